// SPDX-License-Identifier: Apache-2.0
// Checks manifests for Kubernetes against its schemas, offline: what must be there and of which type (kubernetes-models' JSON schemas), and
// that no field has a name that Kubernetes does not know (its types, by the TypeScript compiler).
// usage: manifests.js FILE...; prints "ok: …" for each document. Exit status: 0 all are good, 1 not.
const fs = require('fs');
const path = require('path');
const modules = process.env.PAGE_MODULES;
const yaml = require(path.join(modules, 'js-yaml'));
const ts = require(path.join(modules, 'typescript'));

// What the types do not allow in a document, as text.
function unknown(document, file) {
  const source = `import {I${document.kind}} from 'kubernetes-models/${document.apiVersion}';\n` +
    `export const it: I${document.kind} = ${JSON.stringify(document)};\n`;
  const name = path.join(modules, '..', `manifest-${process.pid}.ts`);
  fs.writeFileSync(name, source);
  try {
    const program = ts.createProgram([name], {noEmit: true, strict: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2020,
      module: ts.ModuleKind.CommonJS, moduleResolution: ts.ModuleResolutionKind.Node10});
    return ts.getPreEmitDiagnostics(program).map(d => `${file}: ${ts.flattenDiagnosticMessageText(d.messageText, ' ')}`);
  } finally {
    fs.unlinkSync(name);
  }
}

let bad = 0;
for (const file of process.argv.slice(2)) {
  for (const document of yaml.loadAll(fs.readFileSync(file, 'utf8'))) {
    const what = `${path.basename(file)}: ${document.kind} ${document.metadata && document.metadata.name}`;
    let mistakes = unknown(document, what);
    try {
      new (require(path.join(modules, 'kubernetes-models', document.apiVersion))[document.kind])(document).validate();
    } catch (error) {
      mistakes = mistakes.concat(`${what}: ${error.message}`);
    }
    mistakes.forEach(mistake => console.log(mistake));
    bad += mistakes.length;
    if (mistakes.length === 0) console.log(`ok: ${what} is as Kubernetes' schema has it`);
  }
}
process.exit(bad > 0 ? 1 : 0);
