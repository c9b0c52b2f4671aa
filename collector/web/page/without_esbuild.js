// SPDX-License-Identifier: Apache-2.0
// In the place of a bundle where there was nothing to make it with.
document.body.textContent =
  "kprof was built without this page. To get it, install esbuild (Debian: apt-get install esbuild), " +
  "remove the build folder, and build again.";
