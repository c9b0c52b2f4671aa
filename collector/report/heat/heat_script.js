// SPDX-License-Identifier: Apache-2.0
// Names the range under the pointer, and the one that a drag or the keys choose: as kprof flame
// takes it.
(function () {
  "use strict";
  var byId = function (id) { return document.getElementById(id); };
  var svg = document.documentElement, over = byId("over"), place = byId("cells").dataset;
  var map = JSON.parse(byId("cells").textContent);
  var x0 = +place.x, y0 = +place.y, width = +place.width, height = +place.height;
  var count = map.columns * map.rows;
  var anchor = 0, at = 0, dragged = false, chosen = null;
  var hint = "Drag to choose a range, c copies it: to be pasted behind kprof flame" + (map.profiles ? "" : " --profile ID");

  var column = function (cell) { return Math.floor(cell / map.rows); };
  var left = function (cell) { return x0 + column(cell) * width; };
  var below = function (cell) { return y0 - cell % map.rows * height; };
  var time = function (cell) { return map.from_ms + cell * map.cell_ms; };
  var seconds = function (ms) { return String(Math.round(ms * 1000) / 1e6) + "s"; };
  // Of several profiles each that the range is of, by its own time.
  var range = function (first, last) {
    var from = time(first), to = time(last + 1);
    if (!map.profiles) { return "--from " + seconds(from) + " --to " + seconds(to); }
    return map.profiles.filter(function (p) { return p.from_ms < to && p.until_ms > from; }).map(function (p) {
      return "--profile " + p.id + " --from " + seconds(Math.max(0, from - p.from_ms)) + " --to " +
        seconds(Math.min(p.until_ms, to) - p.from_ms);
    }).join(", ") || "no profile";
  };
  var sum = function (list, first, last) {
    return list.slice(first, last + 1).reduce(function (a, b) { return a + b; }, 0);
  };

  // A number of the metric's, and of its unit: a plural.
  function amount(n) {
    if (place.unit !== "bytes") { return n.toLocaleString("en") + " " + (n === 1 ? place.unit.slice(0, -1) : place.unit); }
    var unit = 0;
    for (; unit < 4 && n >= 999.5; unit++) { n /= 1000; }
    return n.toFixed(unit > 0 && n < 9.95 ? 1 : 0) + " " + ["B", "KB", "MB", "GB", "TB"][unit];
  }

  function about(first, last) {
    var looks = sum(map.looks, first, last), parts = [];
    if (looks > 0) {
      var value = place.level === "1"
        ? map.values.slice(first, last + 1).reduce(function (a, b) { return Math.max(a, b); }, 0)
        : sum(map.values, first, last);
      parts.push(amount(value) + ", " + looks.toLocaleString("en") + (looks === 1 ? " look" : " looks"));
    } else {
      parts.push("no looks");
    }
    [["not answered", map.unanswered, ""], ["too busy", map.late_ms, " ms"], ["held back", map.held_ms, " ms"]]
      .forEach(function (gap) {
        var n = sum(gap[1], first, last);
        if (n > 0) { parts.push(gap[0] + " " + Math.round(n) + gap[2]); }
      });
    return parts.join(", ");
  }

  // The outline of the cells from one to another: columns are walked through from the bottom up.
  function outline(first, last) {
    var top = y0 - map.rows * height, x = left(first), end = left(last) + width;
    if (column(first) === column(last)) {
      return "M" + [x, below(first)] + "H" + end + "V" + (below(last) - height) + "H" + x + "Z";
    }
    return "M" + [x, below(first)] + "V" + top + "H" + left(last) + "V" + (below(last) - height) +
      "H" + end + "V" + y0 + "H" + (x + width) + "V" + below(first) + "Z";
  }

  function show(cell) {
    at = cell;
    byId("pointer").setAttribute("d", outline(cell, cell));
    byId("here").textContent = range(cell, cell) + "   " + about(cell, cell);
  }

  function choose(from, to) {
    chosen = from === null ? null : [Math.min(from, to), Math.max(from, to)];
    byId("mark").setAttribute("d", chosen ? outline(chosen[0], chosen[1]) : "");
    byId("chosen").textContent = chosen ? range(chosen[0], chosen[1]) + "   " + about(chosen[0], chosen[1]) : hint;
  }

  function cellAt(event) {
    var point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    var c = Math.min(map.columns - 1, Math.max(0, Math.floor((point.x - x0) / width)));
    var r = Math.min(map.rows - 1, Math.max(0, Math.floor((y0 - point.y) / height)));
    return c * map.rows + r;
  }

  over.addEventListener("pointerdown", function (event) {
    if (event.button !== 0) { return; }
    anchor = cellAt(event);
    dragged = true;
    if (over.setPointerCapture && event.isTrusted) { over.setPointerCapture(event.pointerId); }
    choose(anchor, anchor);
  });
  over.addEventListener("pointermove", function (event) {
    show(cellAt(event));
    if (dragged) { choose(anchor, at); }
  });
  window.addEventListener("pointerup", function () { dragged = false; });
  window.addEventListener("pointercancel", function () { dragged = false; });

  var steps = { ArrowUp: 1, ArrowDown: -1, ArrowRight: map.rows, ArrowLeft: -map.rows };
  window.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey) { return; }
    if (steps[event.key]) {
      var to = Math.min(count - 1, Math.max(0, at + steps[event.key]));
      if (event.shiftKey) {
        anchor = chosen ? anchor : at;
        choose(anchor, to);
      }
      show(to);
      event.preventDefault();
    } else if (event.key === "Escape") {
      choose(null);
    } else if (event.key === "c" && chosen && navigator.clipboard) {
      navigator.clipboard.writeText(range(chosen[0], chosen[1])).then(function () {
        byId("chosen").textContent = range(chosen[0], chosen[1]) + "   copied";
      }, function () {});
    }
  });

  // Their places are the script's business now: tooltips of columns would cover the cells.
  Array.prototype.forEach.call(over.querySelectorAll("title"), function (title) { title.remove(); });
  choose(null);
})();
