import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Built once into the package; the gateway serves it from there. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [react(), tailwindcss()],
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    // The content security policy permits no `data:` script and no inline one.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One file on purpose: the whole is small, and comes from near by.
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': process.env.SALLYPORT_URL ?? 'http://127.0.0.1:4777' } },
})
