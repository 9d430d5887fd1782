"use strict";
// What the theme leaves without a name for those who hear the page.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
