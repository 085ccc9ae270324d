import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { NewSession, SavedSession, Session, SessionServers } from '../session.ts'
import { AgentName } from '../token.ts'
import { UserName } from '../user.ts'
import { endpoint, page } from './base.ts'

const named = z.object({ params: z.strictObject({ name: z.string().describe('Name of the session') }) })
const moment = z.iso.datetime({ offset: true })
const servers = SessionServers.optional().describe('Servers that the session adds, changes or disables')

export const sessions = {
  list: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/sessions',
      tags: ['sessions'],
      summary: 'List the sessions that the caller may see',
    })
    .input(z.strictObject({ all: z.stringbool().optional().describe('Include ended and expired sessions') }))
    .output(page(Session)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/sessions/{name}',
      tags: ['sessions'],
      summary: 'Get one session',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Session),
  create: endpoint(members)
    .route({
      method: 'POST',
      path: '/sessions',
      tags: ['sessions'],
      summary: 'Create a session and its token; no other answer contains the token',
      successStatus: 201,
    })
    .input(
      z.strictObject({
        name: AgentName.optional().describe('Name of the session. A name is never reused. Default: a generated name'),
        agent: AgentName.optional().describe('The agent whose settings the session inherits'),
        project: z.string().optional().describe('The project whose settings the session inherits'),
        owner: UserName.optional().describe('The user who owns the session. Default: the user who sends the request'),
        servers,
        expiresAt: moment
          .optional()
          .describe('Time at which the session expires, at most 30 days from now. Default: in one day'),
      }),
    )
    .output(NewSession),
  update: endpoint(members)
    .route({
      method: 'PATCH',
      path: '/sessions/{name}',
      tags: ['sessions'],
      summary: 'Change the servers or the expiry of a session',
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ servers, expiresAt: moment.optional() }) }))
    .output(SavedSession),
  end: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/sessions/{name}',
      tags: ['sessions'],
      summary: 'End a session; its tokens become invalid at once',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Session),
}
