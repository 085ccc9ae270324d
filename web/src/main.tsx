import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { isSignedOut } from './lib/api.ts'
import { meKey } from './lib/who.ts'
import { router } from './router.tsx'
import './style.css'

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    // Any query may be the first to report that the sign-in has ended: reload the user, which opens the sign-in page.
    onError(error, { queryKey }) {
      if (queryKey[0] !== meKey[0] && isSignedOut(error)) void queries.invalidateQueries({ queryKey: meKey })
    },
  }),
  defaultOptions: { queries: { staleTime: 10_000, retry: false } },
})
const root = document.getElementById('root')

if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
}
