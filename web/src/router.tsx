import { createRootRoute, createRoute, createRouter, Navigate, Outlet } from '@tanstack/react-router'
import { ApprovalsPage } from './approvals/ApprovalsPage.tsx'
import { Frame } from './parts/Frame.tsx'
import { SignInPage } from './parts/SignInPage.tsx'

const root = createRootRoute({ component: Outlet, notFoundComponent: () => <Navigate to="/approvals" /> })

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>): { next?: string } =>
    // Only paths of this application: a link to the sign-in page must not redirect to another site.
    typeof search.next === 'string' && /^\/[a-z]/.test(search.next) ? { next: search.next } : {},
  component: SignInPage,
})

const framed = createRoute({ getParentRoute: () => root, id: 'framed', component: Frame })

const home = createRoute({
  getParentRoute: () => framed,
  path: '/',
  component: () => <Navigate to="/approvals" replace />,
})

/** One route for the list and for each approval, so that unsent decisions survive navigation between them. */
const approvals = createRoute({ getParentRoute: () => framed, path: '/approvals', component: ApprovalsPage })
const approval = createRoute({ getParentRoute: () => approvals, path: '/$id', component: () => null })

export const router = createRouter({
  routeTree: root.addChildren([signIn, framed.addChildren([home, approvals.addChildren([approval])])]),
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
