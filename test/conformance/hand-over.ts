import { request } from 'node:http'

/**
 * The program that the suite starts as the client under test. It hands the address of the suite's server over to the
 * test, which uses it through a gateway, because a new gateway for each scenario takes most of the time of a run.
 */
const order = { url: process.argv.at(-1), context: process.env.MCP_CONFORMANCE_CONTEXT ?? '' }
const handed = request(process.env.SALLYPORT_TEST_CLIENT ?? '', { method: 'POST' }, (answer) => {
  answer.pipe(process.stderr)
  process.exitCode = answer.statusCode === 200 ? 0 : 1
})
handed.end(JSON.stringify(order))
