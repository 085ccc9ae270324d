import type { ComponentProps } from 'react'

type ButtonProps = ComponentProps<'button'> & { tone?: 'plain' | 'main' | 'danger'; hint?: string }

const tones = {
  plain: 'border-line bg-panel text-ink hover:bg-sunken',
  main: 'border-accent bg-accent text-accent-ink hover:opacity-90',
  danger: 'border-danger bg-panel text-danger hover:bg-danger-ground',
}

/** The label is a verb. `hint` is the keyboard shortcut. */
export function Button({ tone = 'plain', hint, children, className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={`inline-flex h-9 items-center justify-center gap-2 rounded-md border px-3 font-medium transition-colors duration-[120ms] disabled:opacity-60 max-md:h-11 ${tones[tone]} ${className}`}
      {...rest}
    >
      {children}
      {hint && (
        <span aria-hidden="true" className="hidden rounded border border-current px-1 text-12 opacity-70 md:inline">
          {hint}
        </span>
      )}
    </button>
  )
}
