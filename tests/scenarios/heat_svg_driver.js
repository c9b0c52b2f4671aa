// SPDX-License-Identifier: Apache-2.0
// Works a heat map as a hand does: 66_heat.sh puts it behind the picture's own script. What came of it stands as lines in an element of
// the picture, for whoever reads the document.
(function () {
  "use strict";
  var lines = [];
  var byId = function (id) { return document.getElementById(id); };
  var place = byId("cells").dataset;
  var say = function () { lines.push(Array.from(arguments).join("|")); };

  // What lies uppermost in the middle of a cell gets the event: the picture must take it.
  function point(type, column, row) {
    var at = new DOMPoint(+place.x + (column + 0.5) * place.width, +place.y - (row + 0.5) * place.height)
      .matrixTransform(document.documentElement.getScreenCTM());
    var hit = document.elementFromPoint(at.x, at.y);
    if (!hit || !byId("over").contains(hit)) { throw new Error(type + " reaches " + (hit && hit.outerHTML)); }
    hit.dispatchEvent(new PointerEvent(type, { bubbles: true, cancelable: true, button: 0, clientX: at.x, clientY: at.y }));
  }
  function press(key, shiftKey) {
    window.dispatchEvent(new KeyboardEvent("keydown", { key: key, shiftKey: shiftKey, cancelable: true }));
  }

  try {
    point("pointermove", 2, 10);
    say("hover", byId("here").textContent);
    point("pointerdown", 2, 10);
    point("pointermove", 3, 5);
    point("pointermove", 3, 30);
    point("pointerup", 3, 30);
    point("pointermove", 4, 0);
    say("drag", byId("chosen").textContent);
    point("pointermove", 2, 10);
    point("pointerdown", 2, 10);
    point("pointermove", 1, 45);
    point("pointerup", 1, 45);
    say("back", byId("chosen").textContent);
    press("Escape");
    press("ArrowRight", true);
    say("keys", byId("chosen").textContent);
    press("Escape");
    say("escape", byId("chosen").textContent);
  } catch (error) {
    say("error", error.stack);
  }
  var text = document.createElementNS("http://www.w3.org/2000/svg", "desc");
  text.textContent = "driver\n" + lines.join("\n") + "\ndriven\n";
  document.documentElement.appendChild(text);
})();
