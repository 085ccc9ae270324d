import { Command } from 'commander'
import { addAgents } from './commands/agents.ts'
import { addApprovals } from './commands/approvals/approvals.ts'
import { addAudit } from './commands/audit/audit.ts'
import { addBackup } from './commands/backup.ts'
import { addCalls } from './commands/calls.ts'
import { addConnect } from './commands/clients/connect.ts'
import { addDisconnect } from './commands/clients/disconnect.ts'
import { addExport } from './commands/clients/export.ts'
import { addExamples, addGlobalOptions, helpConfiguration, type Run } from './commands/command.ts'
import { addCompletion } from './commands/completion.ts'
import { addConfig } from './commands/config.ts'
import { addData } from './commands/data.ts'
import { addDoctor } from './commands/doctor/doctor.ts'
import { addExplain } from './commands/explain.ts'
import { addGallery } from './commands/gallery.ts'
import { addGrants } from './commands/grants.ts'
import { addImport } from './commands/import/import.ts'
import { addOpen } from './commands/open.ts'
import { addProjects } from './commands/projects.ts'
import { addRules } from './commands/rules.ts'
import { addSecrets } from './commands/secrets.ts'
import { addServe } from './commands/serve/serve.ts'
import { addServers } from './commands/servers/servers.ts'
import { addSessions } from './commands/sessions.ts'
import { addSetupLink } from './commands/setup-link.ts'
import { addStatus } from './commands/status.ts'
import { addStdio } from './commands/stdio.ts'
import { addTokens } from './commands/tokens.ts'
import { addTools } from './commands/tools/tools.ts'
import { addUsers } from './commands/users.ts'
import { addWebhooks } from './commands/webhooks.ts'
import { version } from './version.ts'

/** All commands. Commander stores parsed values in them, so each run needs new ones. */
export function createProgram(run: Run): Command {
  const program = new Command('sallyport')
    .description(
      'MCP gateway: AI agents reach all MCP servers of a team through one address, with rules, approvals and audit.',
    )
    .version(version, '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError() {} })
    // Global options end at the first command: in `servers add --url` the address is the server's, not the gateway's.
    .enablePositionalOptions()
    .configureHelp(helpConfiguration)
  addGlobalOptions(program)
  program.addHelpText('after', `\n${defaults}\n\n${exitCodes}`)
  addExamples(program, [
    'sallyport serve',
    'sallyport servers add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs',
    'sallyport tokens create --agent reviewer',
    'sallyport tools list --json',
  ])
  addServe(program, run)
  addStdio(program, run)
  addStatus(program, run)
  addOpen(program, run)
  addSetupLink(program, run)
  addDoctor(program, run)
  addExplain(program, run)
  addConfig(program, run)
  addServers(program, run)
  addGallery(program, run)
  addImport(program, run)
  addTools(program, run)
  addUsers(program, run)
  addAgents(program, run)
  addProjects(program, run)
  addTokens(program, run)
  addConnect(program, run)
  addDisconnect(program, run)
  addExport(program, run)
  addRules(program, run)
  addApprovals(program, run)
  addGrants(program, run)
  addSecrets(program, run)
  addSessions(program, run)
  addCalls(program, run)
  addAudit(program, run)
  addWebhooks(program, run)
  addBackup(program, run)
  addData(program, run)
  addCompletion(program, run)
  return program
}

/** `sallyport servers add` */
export function toPath(command: Command): string {
  return command.parent ? `${toPath(command.parent)} ${command.name()}` : command.name()
}

const defaults = [
  'Without --gateway, a command uses the gateway of the data folder: .sallyport in the current folder,',
  'or else in your home folder. Without --token and --as, it uses the admin token in the data folder.',
].join('\n')

const exitCodes = [
  'Exit codes:',
  '  0 done   1 failed   2 wrong usage   3 sign-in needed   4 unreachable',
  '  5 the tool failed   6 denied        7 waiting for approval',
  '  8 saved, but not connected          130 interrupted',
].join('\n')
