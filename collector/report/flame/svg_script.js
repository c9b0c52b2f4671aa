// SPDX-License-Identifier: Apache-2.0
// Zoom by a click, search, tooltips below the picture. It works on the frames that are drawn: each
// a group of a title (name, then what it weighs), a box and perhaps a label.
(function () {
  "use strict";
  var margin = 10, character = 6.63;
  var svg = document.documentElement;
  var whole = svg.viewBox.baseVal.width - 2 * margin;
  var byId = function (id) { return document.getElementById(id); };
  var frames = Array.prototype.map.call(byId("frames").children, function (group) {
    var box = group.querySelector("rect");
    var lines = group.querySelector("title").textContent.split("\n");
    return {
      group: group, box: box, label: group.querySelector("text"),
      name: lines[0], weight: lines[1], merged: group.classList.contains("m"),
      x: box.x.baseVal.value - margin, y: box.y.baseVal.value, width: box.width.baseVal.value
    };
  });
  var zoomed = frames[0];

  function label(frame, x, width) {
    var room = Math.floor((width - 6) / character);
    if (room < 3 || frame.merged) {
      if (frame.label) { frame.label.textContent = ""; }
      return;
    }
    if (!frame.label) {
      frame.label = document.createElementNS(svg.namespaceURI, "text");
      frame.label.setAttribute("y", frame.y + 12);
      frame.group.appendChild(frame.label);
    }
    var characters = Array.from(frame.name);
    frame.label.textContent =
      characters.length <= room ? frame.name : characters.slice(0, room - 2).join("") + "..";
    frame.label.setAttribute("x", x + 3);
  }

  // The frame takes the whole width; what lies below it too.
  function zoom(to) {
    var scale = whole / to.width, slack = to.width * 1e-6 + 0.005;
    zoomed = to;
    frames.forEach(function (frame) {
      var below = frame.y > to.y && frame.x <= to.x + slack &&
        frame.x + frame.width >= to.x + to.width - slack;
      var inside = frame.y <= to.y && frame.x >= to.x - slack &&
        frame.x + frame.width <= to.x + to.width + slack;
      frame.group.setAttribute("display", below || inside ? "inline" : "none");
      frame.group.classList.toggle("far", below);
      if (below || inside) {
        var x = margin + (below ? 0 : (frame.x - to.x) * scale);
        var width = below ? whole : frame.width * scale;
        frame.box.setAttribute("x", x);
        frame.box.setAttribute("width", width);
        label(frame, x, width);
      }
    });
    byId("reset").setAttribute("visibility", to === frames[0] ? "hidden" : "visible");
  }

  // Marks the frames whose names match, and tells the share of the whole that they cover together.
  function search(text) {
    var pattern = null, found = [], covered = 0, end = 0;
    if (text) {
      try {
        pattern = new RegExp(text, "i");
      } catch (error) { // no regular expression: these very characters
        pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
      }
    }
    frames.forEach(function (frame) {
      var match = pattern !== null && !frame.merged && pattern.test(frame.name);
      frame.group.classList.toggle("found", match);
      if (match) { found.push(frame); }
    });
    found.sort(function (a, b) { return a.x - b.x || b.width - a.width; });
    found.forEach(function (frame) {
      var from = Math.max(frame.x, end), to = frame.x + frame.width;
      if (to > from) {
        covered += to - from;
        end = to;
      }
    });
    byId("matched").textContent =
      pattern ? "Matched: " + (100 * covered / whole).toFixed(1) + " %" : "";
    byId("search").textContent = pattern ? "Clear search" : "Search (/)";
  }

  function ask() {
    if (byId("matched").textContent) {
      search("");
      return;
    }
    var text = window.prompt("Search functions (a regular expression):", "");
    if (text !== null) { search(text); }
  }

  frames.forEach(function (frame) {
    frame.group.addEventListener("mouseover", function () {
      byId("details").textContent = frame.name + ": " + frame.weight;
    });
    frame.group.addEventListener("mouseout", function () { byId("details").textContent = ""; });
    if (!frame.merged) {
      frame.group.addEventListener("click", function () { zoom(frame); });
    }
  });
  byId("search").addEventListener("click", ask);
  byId("reset").addEventListener("click", function () { zoom(frames[0]); });
  window.addEventListener("keydown", function (event) {
    if (event.key === "/" || (event.key === "f" && event.ctrlKey)) {
      event.preventDefault();
      ask();
    } else if (event.key === "Escape") {
      if (zoomed !== frames[0]) { zoom(frames[0]); } else { search(""); }
    }
  });
})();
