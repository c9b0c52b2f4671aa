// SPDX-License-Identifier: Apache-2.0
// The page: its head line, and the view that the address asks for below.
import { fill, h } from "./dom";

const main = h("main", { id: "view" });
fill(document.body, h("header", { class: "head" }, h("a", { class: "name", href: "/" }, "kprof")), main);
