import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useRouter } from '@tanstack/react-router'
import { useEffect } from 'react'
import { api, isSignedOut } from './api.ts'
import { leave } from './leaving.ts'

export const meKey = ['me']

/** The signed-in user. Without a sign-in, opens the sign-in page, which returns to this page. */
export function useMe() {
  const router = useRouter()
  const me = useQuery({ queryKey: meKey, queryFn: () => api.people.me() })
  const signedOut = me.error !== null && isSignedOut(me.error)
  useEffect(() => {
    const { pathname, href } = router.state.location
    if (signedOut && pathname !== '/sign-in')
      void router.navigate({ to: '/sign-in', search: { next: href }, replace: true })
  }, [signedOut, router])
  return { me: me.data, error: signedOut ? undefined : (me.error ?? undefined), retry: () => void me.refetch() }
}

export function useSignOut(): () => Promise<void> {
  const navigate = useNavigate()
  const queries = useQueryClient()
  return async () => {
    await leave()
    await api.people.signOut().catch(() => undefined)
    queries.clear()
    await navigate({ to: '/sign-in' })
  }
}
