// SPDX-License-Identifier: Apache-2.0
// In the place of a bundle where there was nothing to make it with.
document.body.textContent =
  "kprof was built without this page. To get it, install esbuild and libjs-dygraphs (Debian: apt-get install esbuild libjs-dygraphs), " +
  "remove the build folder, and build again.";
