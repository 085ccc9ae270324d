import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type FormEvent, useId, useState } from 'react'
import { z } from 'zod'
import { type Failure, signInApi, toFailure } from '../lib/api.ts'
import { Button } from './Button.tsx'
import { DocsLink } from './DocsLink.tsx'

export function SignInPage() {
  const { next } = useSearch({ from: '/sign-in' })
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [failure, setFailure] = useState<Failure>()
  const [busy, setBusy] = useState(false)
  const setupNeeded = useSetupNeeded()

  async function signIn(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    setFailure(undefined)
    try {
      await signInApi.signIn({ name: String(form.get('name')), password: String(form.get('password')) })
      await queries.resetQueries()
      await navigate({ href: next ?? '/approvals', replace: true })
    } catch (error) {
      setFailure(toFailure(error))
      setBusy(false)
    }
  }

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <form onSubmit={signIn} className="w-full max-w-sm rounded-lg border border-line bg-panel p-6">
        <div className="mb-6 flex items-center gap-2">
          <img src="/icon.svg" alt="" width={28} height={28} />
          <h1 className="font-semibold text-20">Sign in to Sallyport</h1>
        </div>
        {setupNeeded && (
          <p role="status" className="mb-4 rounded-md border border-line px-3 py-2 text-13">
            This gateway has no administrator yet. Open the link that the gateway printed when it started, or print a
            new link with <code>sallyport setup-link</code>.
          </p>
        )}
        <Field label="Name" name="name" autoComplete="username" autoFocus />
        <Field label="Password" name="password" type="password" autoComplete="current-password" />
        {failure && (
          <p role="alert" className="mb-4 rounded-md bg-danger-ground px-3 py-2 text-13 text-danger">
            {failure.message} {failure.hint} <DocsLink failure={failure} />
          </p>
        )}
        <Button type="submit" tone="main" disabled={busy} className="w-full">
          {busy ? 'Signing in' : 'Sign in'}
        </Button>
      </form>
    </main>
  )
}

/** Whether the first administrator must be created before anybody can sign in. */
function useSetupNeeded(): boolean {
  const { data } = useQuery({
    queryKey: ['setup-state'],
    queryFn: async () => SetupState.parse(await (await fetch('/setup/state')).json()),
  })
  return data?.needed ?? false
}

const SetupState = z.object({ needed: z.boolean() })

type FieldProps = { label: string; name: string; type?: string; autoComplete: string; autoFocus?: boolean }

function Field({ label, autoFocus, ...input }: FieldProps) {
  const id = useId()
  return (
    <div className="mb-4">
      <label htmlFor={id} className="mb-1 block text-13 text-soft">
        {label}
      </label>
      <input
        id={id}
        required
        // biome-ignore lint/a11y/noAutofocus: the page has one purpose, and this is its first field
        autoFocus={autoFocus}
        className="h-9 w-full border border-line bg-ground px-3 max-md:h-11"
        {...input}
      />
    </div>
  )
}
