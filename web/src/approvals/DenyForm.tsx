import { useId, useState } from 'react'
import { Button } from '../parts/Button.tsx'

type DenyFormProps = { onCancel(): void; onDeny(reason: string | undefined): void }

/** The reason is sent to the model, so that it can act differently. */
export function DenyForm({ onCancel, onDeny }: DenyFormProps) {
  const id = useId()
  const [reason, setReason] = useState('')
  return (
    <form
      className="rounded-lg border border-line bg-panel p-4"
      onSubmit={(event) => {
        event.preventDefault()
        onDeny(reason.trim() || undefined)
      }}
    >
      <label htmlFor={id} className="mb-1 block text-13 text-soft">
        Reason (the agent sees it)
      </label>
      <textarea
        id={id}
        // biome-ignore lint/a11y/noAutofocus: the person just asked for this field
        autoFocus
        value={reason}
        maxLength={2000}
        rows={3}
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onCancel()
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
        }}
        className="mb-3 w-full border border-line bg-ground px-3 py-2"
      />
      <div className="flex gap-2 max-md:flex-col">
        <Button type="submit" tone="danger">
          Deny
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  )
}
