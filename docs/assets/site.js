// the theme puts a bar of buttons on each block of code, all without a name: tell them apart
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((bar, place) => {
    bar.setAttribute("aria-label", `Code ${document.querySelectorAll(".md-code__nav[aria-label]").length + place + 1}`);
  });
}).observe(document.documentElement, { childList: true, subtree: true });
