"""What a page must be so that everybody can use it: axe finds nothing, whatever its level."""


def find_barriers(page):
    """What axe finds on a page: the rule and the first place of each violation."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"preload": False}).response["violations"]
    return [(one["id"], one["nodes"][0]["target"], one["nodes"][0].get("failureSummary", "")[:300]) for one in found]
