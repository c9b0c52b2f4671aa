// SPDX-License-Identifier: Apache-2.0
// Works a flame graph as a hand does: 45_flame_formats.sh puts it behind the picture's own script. What came of it stands as lines in an
// element of the picture, for whoever reads the document.
(function () {
  "use strict";
  var lines = [];
  var frames = Array.from(document.querySelectorAll("#frames > g"));
  var byId = function (id) { return document.getElementById(id); };
  var nameOf = function (frame) { return frame.querySelector("title").textContent.split("\n")[0]; };
  var boxOf = function (frame) { return frame.querySelector("rect").getBoundingClientRect(); };
  var shown = function (element) {
    var style = window.getComputedStyle(element);
    return style.display !== "none" && style.visibility !== "hidden";
  };
  var say = function () { lines.push(Array.from(arguments).join("|")); };
  var find = function (name) { return frames.find(function (frame) { return nameOf(frame) === name; }); };

  // What lies uppermost in the middle of an element gets the event: it has to be that element or inside of it.
  function point(element, type) {
    var box = element.getBoundingClientRect();
    var hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (!hit || !element.contains(hit)) { throw new Error(type + " does not reach " + element.textContent); }
    hit.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, view: window }));
  }
  function press(key) { window.dispatchEvent(new KeyboardEvent("keydown", { key: key, cancelable: true })); }
  function answer(text) { window.prompt = function () { return text; }; }
  function look() {
    return frames.map(function (frame) {
      var box = boxOf(frame), label = frame.querySelector("text");
      return [shown(frame), box.left.toFixed(2), box.width.toFixed(2), label ? label.textContent : ""].join();
    }).join();
  }
  function found() {
    return frames.filter(function (frame) { return frame.classList.contains("found"); }).map(nameOf).sort().join();
  }

  try {
    var first = look();
    frames.forEach(function (frame) { say("frame", nameOf(frame), boxOf(frame).width.toFixed(4)); });

    var hover = find("waiting");
    point(hover, "mouseover");
    say("hover", byId("details").textContent);
    point(hover, "mouseout");
    say("hover ended", byId("details").textContent);

    var to = find("scenario_flame:handle_call/3");
    point(to, "click");
    say("zoomed", boxOf(to).width.toFixed(2), to.querySelector("text").textContent, shown(byId("reset")));
    say("zoomed shows", frames.filter(shown).map(nameOf).sort().join());
    point(byId("reset"), "click");
    say("reset", look() === first, shown(byId("reset")));
    point(to, "click");
    press("Escape");
    say("escape", look() === first);

    answer("SERVE/0$|work/0$");
    point(byId("search"), "click");
    say("search", byId("matched").textContent, found());
    point(byId("search"), "click");
    say("cleared", byId("matched").textContent, found());
    answer("handle/1|inner");
    press("/");
    say("search within", byId("matched").textContent, found());
    press("Escape");
    say("escaped", byId("matched").textContent, found());
    answer("(");
    press("/");
    say("no expression", byId("matched").textContent, found());
    press("/");
    answer(null);
    press("/");
    say("no search", byId("matched").textContent);
  } catch (error) {
    say("error", error);
  }
  var told = document.createElementNS("http://www.w3.org/2000/svg", "desc");
  told.textContent = "driver\n" + lines.join("\n") + "\ndriven\n";
  document.documentElement.appendChild(told);
})();
