// Browsers start no worker for a page that was opened as a file. The search of this site needs one, so there its script
// runs in a hidden frame instead, which looks like a worker from both sides.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(address) {
      super();
      const url = new URL(address, document.baseURI).href;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><title>search</title>");
      inside.document.close();
      const load = (source) => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = source;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${source}`));
        inside.document.head.append(script);
      });
      inside.postMessage = (data) => this.answer(data);
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(new URL(source, url).href)), Promise.resolve());
      inside.addEventListener("error", (event) => this.dispatchEvent(new ErrorEvent("error", { message: event.message })));
      load(url).then(() => {
        for (const data of this.waiting) this.ask(data);
        this.waiting = null;
      }, (error) => this.dispatchEvent(new ErrorEvent("error", { message: error.message })));
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.ask(data);
    }

    ask(data) {
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) }));
    }

    answer(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      setTimeout(() => {
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
