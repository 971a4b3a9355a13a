// `node check.mjs schema SCHEMA FILE` validates, `node check.mjs speedscope FILE` opens with speedscope.
// On success, prints a result and exits with 0; otherwise prints the reason and exits with 1.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

// The packages are in the working directory, which is in the cache, not beside this file.
const require = createRequire(path.resolve('package.json'))
const [what, ...files] = process.argv.slice(2)

function fail(message) {
  console.error(String(message).slice(0, 2000))
  process.exit(1)
}

if (what === 'schema') {
  const [schema, file] = files.map(name => JSON.parse(fs.readFileSync(name, 'utf8')))
  const Ajv = require(schema.$schema.includes('2020-12') ? 'ajv/dist/2020' : 'ajv').default
  const validate = new Ajv({ strict: false }).compile(schema)
  if (!validate(file)) fail(JSON.stringify(validate.errors))
  console.log('valid')
} else {
  await speedscope(files[0])
}

// Opens a profile in speedscope's released page, in a DOM without WebGL. The page imports the profile
// and puts its name into the title. It fails only after that, when it draws.
async function speedscope(file) {
  const { JSDOM, VirtualConsole } = require('jsdom')
  const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release')
  const script = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name))
  const { window } = new JSDOM('<!DOCTYPE html><body></body>', {
    url: 'http://localhost/#localProfilePath=none',
    runScripts: 'outside-only',
    pretendToBeVisual: true,
    virtualConsole: new VirtualConsole(),
  })
  const missing = { TextDecoder, TextEncoder, WebAssembly, Request, Response }
  const query = () => ({ matches: false, addListener() {}, addEventListener() {} })
  Object.assign(window, missing, { matchMedia: query, alert: fail })
  let drawing
  process.on('uncaughtException', error => (drawing ??= error))
  process.on('unhandledRejection', error => (drawing ??= error))
  window.eval(fs.readFileSync(path.join(release, script), 'utf8'))
  const until = async (condition, why) => {
    for (let tries = 0; !condition(); tries++) {
      if (tries === 200) fail(`${why}: ${drawing?.message}`)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
  await until(() => window.speedscope, 'speedscope did not start')
  const content = fs.readFileSync(file).toString('base64')
  window.speedscope.loadFileFromBase64(path.basename(file), content)
  await until(() => window.document.title.endsWith('- speedscope'), 'nothing was imported')
  console.log(window.document.title)
  process.exit(0)
}
