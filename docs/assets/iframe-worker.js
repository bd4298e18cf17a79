// Search runs in a worker, and browsers refuse workers to pages that were opened from a folder. There, and nowhere else, the
// worker's program runs in a hidden frame of the page instead. (mkdocs-material looks for the name IFrameWorker.)
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.frame.contentDocument.open(); // keeps the empty page that the frame has now
      this.frame.contentDocument.close();
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const program = this.inside.document.createElement("script");
      program.src = new URL(url, location.href).href;
      this.loaded = new Promise((done) => program.addEventListener("load", done));
      (this.inside.document.body || this.inside.document.documentElement || this.inside.document).append(program);
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
