// What a page asks for by itself can fail while somebody looks elsewhere. Without this it would just stand still.
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
  document.addEventListener("htmx:sendError", () => say(GONE));
  document.addEventListener("htmx:responseError", event => say(refusal(event.detail.xhr.responseText)));
  document.addEventListener("htmx:afterOnLoad", event => { if (event.detail.xhr.status < 400) say(""); });
})();
