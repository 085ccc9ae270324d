/** The official suite as a program of the tests, which are bundled: loading its many files takes most of a short run. */
import '@modelcontextprotocol/conformance/dist/index.js'
