// Wide tables scroll: they can be reached and scrolled by the keyboard (WCAG 2.1.1). The theme wraps them after loading.
function reachable() {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    region.tabIndex = 0;
    region.setAttribute("role", "group");
    region.setAttribute("aria-label", "table");
  }
}
new MutationObserver(reachable).observe(document.documentElement, { childList: true, subtree: true });
reachable();
