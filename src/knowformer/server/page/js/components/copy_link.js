// A button that copies the address of what is shown.
import { el } from "../dom.js";
import { icon } from "../icons.js";
import { toast } from "../live.js";

export function copyLink() {
  const click = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      toast("Link copied.");
    } catch {
      toast("The browser does not let the page copy; the address bar has the link.");
    }
  };
  return el("button.button", { type: "button", on: { click } }, icon("link"), "Copy link");
}
