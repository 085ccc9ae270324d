import type { Command } from 'commander'
import { z } from 'zod'
import { exit } from '../terminal/exit.ts'
import { addCommand, type Run } from './command.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

export function addCompletion(program: Command, run: Run): void {
  addCommand(program, run, {
    use: 'completion <shell>',
    summary: 'print a completion script for bash, zsh or fish',
    notes: [
      'It completes commands, options, and the names of servers, tools, agents and approvals of the running gateway.',
      'For fish: sallyport completion fish > ~/.config/fish/completions/sallyport.fish',
    ],
    examples: [
      `echo 'eval "$(sallyport completion bash)"' >> ~/.bashrc`,
      `echo 'eval "$(sallyport completion zsh)"' >> ~/.zshrc`,
    ],
    input: z.object({ shell: z.enum(shells, `must be ${shells.slice(0, -1).join(', ')} or ${shells.at(-1)}`) }),
    async run({ terminal }, { shell }) {
      terminal.answer({ shell, script: scripts[shell] }, () => scripts[shell])
      return exit.done
    },
  })

  addCommand(program, run, {
    use: '__complete',
    hidden: true,
    takesCommand: true,
    summary: 'print completions of the last word; used by the scripts of `completion`',
    examples: ['sallyport __complete -- servers get f'],
    input: z.object({ command: z.array(z.string()) }),
    // Loaded only here, to keep the start of other commands fast.
    run: async (_context, { command }) => (await import('./complete.ts')).complete(program, command),
  })
}

/** Bash splits words at colons, and names such as `agent:reviewer` contain one. */
const bash = `_sallyport() {
  local current prefix line
  local -a words
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ "\${COMP_LINE:COMP_POINT-1:1}" == ' ' ]] && words+=('')
  current="\${words[\${#words[@]}-1]}"
  prefix=''
  [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]] && prefix="\${current%:*}:"
  COMPREPLY=()
  while IFS=$'\\t' read -r line _; do
    COMPREPLY+=("\${line#"$prefix"}")
  done < <("\${words[0]}" __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _sallyport sallyport`

const zsh = `#compdef sallyport
_sallyport() {
  local line
  local -a candidates
  for line in "\${(@f)$(sallyport __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n "$line" ]] && candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( \${#candidates} )); then _describe sallyport candidates; else _files; fi
}
if [[ "\${funcstack[1]}" == _sallyport ]]; then _sallyport "$@"; else compdef _sallyport sallyport; fi`

const fish = `function __sallyport_complete
  set -l words (commandline -opc) (commandline -ct)
  sallyport __complete -- $words[2..-1] 2>/dev/null
end
complete -c sallyport -f -a '(__sallyport_complete)'
complete -c sallyport -n 'not __sallyport_complete | string length -q' -F`

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish }
