import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { Inbox, LogOut, Moon, Sun, WifiOff } from 'lucide-react'
import { useCallback, useState } from 'react'
import { api } from '../lib/api.ts'
import { type LiveState, useLive } from '../lib/live.ts'
import { useMe, useSignOut } from '../lib/who.ts'

const heard = ['question-asked', 'question-answered', 'call-ended']

/** Rail, top bar, and the page. One stream of events for all of them. */
export function Frame() {
  const me = useMe()
  const queries = useQueryClient()
  const onEvent = useCallback(() => void queries.invalidateQueries({ queryKey: ['approvals'] }), [queries])
  const live = useLive(heard, onEvent)
  if (!me) return <output className="sr-only">Loading</output>
  return (
    <div className="flex min-h-dvh flex-col md:flex-row">
      <Rail />
      <div className="flex min-w-0 flex-1 flex-col">
        <TopBar name={me.name} role={me.role ?? ''} live={live} />
        {live === 'lost' && <Stale />}
        <main className="min-w-0 flex-1 pb-16 md:pb-0">
          <Outlet />
        </main>
      </div>
    </div>
  )
}

function Rail() {
  const waiting = useQuery({
    queryKey: ['approvals', 'waiting'],
    queryFn: () => api.approvals.list({ state: 'waiting', limit: 200 }),
  })
  const count = waiting.data?.items.length ?? 0
  return (
    <nav
      aria-label="Pages"
      className="fixed inset-x-0 bottom-0 z-10 flex border-line border-t bg-panel md:static md:w-48 md:flex-col md:border-t-0 md:border-r"
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
          <span className="rounded-full bg-write-ground px-2 text-12 text-write">
            {count}
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
    <header className="flex h-12 items-center gap-3 border-line border-b bg-panel px-4">
      <span className="flex items-center gap-2 font-semibold md:hidden">
        <img src="/icon.svg" alt="" width={20} height={20} /> Sallyport
      </span>
      <span className="ml-auto flex items-center gap-1.5 text-12 text-soft">
        <span aria-hidden="true" className={`size-2 rounded-full ${live === 'live' ? 'bg-good' : 'bg-write'}`} />
        {liveWords[live]}
      </span>
      <ThemeButton />
      <span className="text-13" title={role}>
        {name}
      </span>
      <button
        type="button"
        onClick={() => void signOut()}
        aria-label="Sign out"
        className="grid size-8 place-items-center text-soft hover:text-ink"
      >
        <LogOut size={16} aria-hidden="true" />
      </button>
    </header>
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
      className="grid size-8 place-items-center text-soft hover:text-ink"
    >
      {theme === 'dark' ? <Sun size={16} aria-hidden="true" /> : <Moon size={16} aria-hidden="true" />}
    </button>
  )
}

function Stale() {
  return (
    <output className="flex items-center gap-2 bg-write-ground px-4 py-2 text-13 text-write">
      <WifiOff size={14} aria-hidden="true" /> The line to the gateway is lost. What you see may be old; it is tried
      again by itself.
    </output>
  )
}
