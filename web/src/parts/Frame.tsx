import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { Bell, BellOff, Inbox, LogOut, Moon, Sun, WifiOff } from 'lucide-react'
import { useCallback, useEffect, useRef, useState } from 'react'
import { approvalsKey, isAbout, waitingQuery } from '../approvals/queries.ts'
import { toFailure } from '../lib/api.ts'
import { type LiveState, useLive } from '../lib/live.ts'
import { useNotices, useTab } from '../lib/notice.ts'
import { meKey, useMe, useSignOut } from '../lib/who.ts'
import { Button } from './Button.tsx'
import { DocsLink } from './DocsLink.tsx'

/** Navigation, top bar and page, with one shared event stream. */
export function Frame() {
  const { me, error, retry } = useMe()
  if (me) return <Framed name={me.name} role={me.role ?? ''} />
  if (!error) return <output className="sr-only">Loading</output>
  const failure = toFailure(error)
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div role="alert" className="max-w-sm">
        <h1 className="font-semibold text-20">{failure.message}</h1>
        <p className="mt-1 mb-4 text-soft">
          {failure.hint} <DocsLink failure={failure} />
        </p>
        <Button onClick={retry}>Try again</Button>
      </div>
    </main>
  )
}

function Framed({ name, role }: { name: string; role: string }) {
  const live = useFreshness()
  return (
    <div className="flex min-h-dvh flex-col md:h-dvh md:flex-row">
      <Rail />
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <TopBar name={name} role={role} live={live} />
        {live === 'lost' && <Stale />}
        <main className="min-h-0 min-w-0 flex-1 pb-16 md:pb-0">
          <Outlet />
        </main>
      </div>
    </div>
  )
}

const heard = ['approval-requested', 'approval-answered', 'call-ended']
const refreshMs = 250

/** Reloads data after events, at most once per interval. */
function useFreshness(): LiveState {
  const queries = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const onGap = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void queries.invalidateQueries({ queryKey: approvalsKey })
    }, refreshMs)
  }, [queries])
  const onEvent = useCallback(
    (name: string, data: unknown) => {
      if (name !== 'call-ended' || isAbout(queries, data)) onGap()
    },
    [queries, onGap],
  )
  const onLost = useCallback(() => void queries.invalidateQueries({ queryKey: meKey }), [queries])
  return useLive(heard, { onEvent, onGap, onLost })
}

/** A hidden tab has no event stream, so the number in its title is polled. */
const hiddenEveryMs = 15_000

function useWaiting() {
  return useQuery({
    ...waitingQuery,
    refetchInterval: () => (document.hidden ? hiddenEveryMs : false),
    refetchIntervalInBackground: true,
  })
}

function Rail() {
  const waiting = useWaiting()
  const count = waiting.data?.items.length ?? 0
  useTab(count)
  return (
    <nav
      aria-label="Pages"
      className="fixed inset-x-0 bottom-0 z-10 flex border-line border-t bg-panel md:static md:w-48 md:shrink-0 md:flex-col md:border-t-0 md:border-r"
    >
      <div className="hidden items-center gap-2 px-4 py-4 font-semibold text-16 md:flex">
        <img src="/icon.svg" alt="" width={22} height={22} /> Sallyport
      </div>
      <Link
        to="/approvals"
        className="flex h-14 flex-1 items-center justify-center gap-2 text-soft md:mx-2 md:h-9 md:flex-none md:justify-start md:px-2"
        activeProps={{ className: 'text-ink! font-medium md:bg-accent-ground' }}
        activeOptions={{ exact: false }}
      >
        <Inbox size={16} aria-hidden="true" /> Approvals
        {count > 0 && (
          <span className="rounded-full bg-write-ground px-2 text-12 text-write md:ml-auto">
            {count}
            {waiting.data?.next && '+'}
            <span className="sr-only"> waiting</span>
          </span>
        )}
      </Link>
    </nav>
  )
}

const liveWords: Record<LiveState, string> = { connecting: 'connecting', live: 'live', lost: 'offline' }

function TopBar({ name, role, live }: { name: string; role: string; live: LiveState }) {
  const signOut = useSignOut()
  return (
    <header className="flex h-12 shrink-0 items-center gap-3 border-line border-b bg-panel px-4">
      <span className="flex items-center gap-2 font-semibold md:hidden">
        <img src="/icon.svg" alt="" width={20} height={20} /> Sallyport
      </span>
      <span className="ml-auto flex items-center gap-1.5 text-12 text-soft">
        <span aria-hidden="true" className={`size-2 rounded-full ${live === 'live' ? 'bg-good' : 'bg-write'}`} />
        {liveWords[live]}
      </span>
      <NoticeButton />
      <ThemeButton />
      <span className="min-w-0 truncate text-13" title={role}>
        {name}
      </span>
      <button
        type="button"
        onClick={() => void signOut()}
        aria-label="Sign out"
        className="grid size-8 shrink-0 place-items-center text-soft hover:text-ink"
      >
        <LogOut size={16} aria-hidden="true" />
      </button>
    </header>
  )
}

function NoticeButton() {
  const { data } = useQuery(waitingQuery)
  const { state, toggle } = useNotices(data?.items.length ?? 0)
  if (state === 'impossible') return null
  const label = {
    on: 'Turn browser notifications off',
    off: 'Notify me in this browser when a call waits for approval',
    refused: 'This browser does not allow notifications from this page',
  }[state]
  return (
    <button
      type="button"
      onClick={() => void toggle()}
      aria-label={label}
      title={label}
      disabled={state === 'refused'}
      className="grid size-8 shrink-0 place-items-center text-soft hover:text-ink disabled:opacity-60"
    >
      {state === 'on' ? <Bell size={16} aria-hidden="true" /> : <BellOff size={16} aria-hidden="true" />}
    </button>
  )
}

function ThemeButton() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? 'light')
  const other = theme === 'dark' ? 'light' : 'dark'
  const change = () => {
    document.documentElement.dataset.theme = other
    localStorage.setItem('theme', other)
    setTheme(other)
  }
  return (
    <button
      type="button"
      onClick={change}
      aria-label={`Use the ${other} theme`}
      className="grid size-8 shrink-0 place-items-center text-soft hover:text-ink"
    >
      {theme === 'dark' ? <Sun size={16} aria-hidden="true" /> : <Moon size={16} aria-hidden="true" />}
    </button>
  )
}

function Stale() {
  return (
    <output className="flex items-center gap-2 bg-write-ground px-4 py-2 text-13 text-write">
      <WifiOff size={14} className="shrink-0" aria-hidden="true" /> The connection to the gateway is lost. The page may
      be outdated. Reconnecting.
    </output>
  )
}
