import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const gateway = process.env.SALLYPORT_URL ?? 'http://127.0.0.1:4777'

/** Builds into `dist/web`, from where the gateway serves the files. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [react(), tailwindcss()],
  build: {
    outDir: fileURLToPath(new URL('../dist/web', import.meta.url)),
    emptyOutDir: true,
    // The content security policy allows neither `data:` nor inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One file on purpose: the application is small and served from the local network.
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': gateway, '/docs': gateway } },
})
