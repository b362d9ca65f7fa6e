// Two conveniences; every page is complete without them.
"use strict";

// A link to a step within a folded stretch unfolds it.
function unfoldTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = id && document.getElementById(id);
  if (!target) return;
  let folded = false;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    folded = folded || !fold.open;
    fold.open = true;
  }
  if (folded) target.scrollIntoView();
}
addEventListener("hashchange", unfoldTarget);
unfoldTarget();

// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
