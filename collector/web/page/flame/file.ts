// SPDX-License-Identifier: Apache-2.0
// The script of a file that `kprof flame --out x.html` writes: the data stand in it.
import { mountFlame } from "./view";

mountFlame(document.getElementById("flame")!, JSON.parse(document.getElementById("data")!.textContent!));
