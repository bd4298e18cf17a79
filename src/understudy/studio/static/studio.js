// What a page cannot do without a script: say that the studio is gone, keep one's place, show a slider's number.
(() => {
  "use strict";
  const GONE = "The studio does not answer any more. If it was stopped, start it again and open the address that it "
    + "prints. Runs go on without it, and what you have kept is kept.";
  const FAILED = "That was refused. Open the first page and try again.";
  const say = text => {
    const place = document.getElementById("trouble");
    place.textContent = text;
    place.hidden = !text;
  };
  const refusal = answer => {
    const told = new DOMParser().parseFromString(answer, "text/html").querySelector("main .strong");
    return told ? told.textContent : FAILED;
  };
  // Otherwise a page would just stand still.
  document.addEventListener("htmx:sendError", () => say(GONE));
  document.addEventListener("htmx:responseError", event => say(refusal(event.detail.xhr.responseText)));
  document.addEventListener("htmx:afterOnLoad", event => { if (event.detail.xhr.status < 400) say(""); });
  // A change brings a new page, in which the button that was pressed may be gone: whoever types finds their place again.
  let place = null;
  document.addEventListener("htmx:beforeSwap", () => {
    const part = document.activeElement.closest("[aria-labelledby]");
    place = part && part.getAttribute("aria-labelledby");
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!place || document.activeElement !== document.body) return;
    const next = document.querySelector(`[aria-labelledby="${place}"] :is(summary, button, textarea)`);
    if (next) next.focus({preventScroll: true});
  });
  // A slider's own value is the number of a step. A number that was typed in its place goes when it is moved.
  const show = slider => {
    const step = slider.dataset.steps.trim().split(" ")[slider.value];
    slider.setAttribute("aria-valuetext", step);
    const typed = document.getElementById(`${slider.id}_exact`).value.trim();
    document.getElementById(`${slider.id}-now`).textContent = typed || step;
  };
  document.querySelectorAll("[data-steps]").forEach(slider => {
    const typed = document.getElementById(`${slider.id}_exact`);
    slider.addEventListener("input", () => { typed.value = ""; show(slider); });
    typed.addEventListener("input", () => show(slider));
    show(slider);
  });
})();
