import { z } from 'zod'
import { allUsers, members } from '../access.ts'
import { NewSession, Session, SessionServers } from '../session.ts'
import { AgentName } from '../token.ts'
import { UserName } from '../user.ts'
import { endpoint, page } from './base.ts'

const named = z.object({ params: z.strictObject({ name: z.string().describe('Name of the session') }) })
const moment = z.iso.datetime({ offset: true })
const servers = SessionServers.optional().describe('Its own choice: servers that are added, changed or switched off')

export const sessions = {
  list: endpoint(allUsers)
    .route({ method: 'GET', path: '/sessions', tags: ['sessions'], summary: 'The sessions the caller may look at' })
    .input(z.strictObject({ all: z.stringbool().optional().describe('Also those that have ended') }))
    .output(page(Session)),
  get: endpoint(allUsers)
    .route({
      method: 'GET',
      path: '/sessions/{name}',
      tags: ['sessions'],
      summary: 'One session',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Session),
  create: endpoint(members)
    .route({
      method: 'POST',
      path: '/sessions',
      tags: ['sessions'],
      summary: 'Make a session with a token of its own; the only answer that shows it',
      successStatus: 201,
    })
    .input(
      z.strictObject({
        name: AgentName.optional().describe('Made up if nothing is said; never used twice'),
        agent: AgentName.optional().describe('The agent whose settings it inherits'),
        project: z.string().optional().describe('The project whose settings it inherits'),
        owner: UserName.optional().describe('The user behind it; whoever asks, if nothing is said'),
        servers,
        expiresAt: moment
          .optional()
          .describe('When it ends by itself; after a day if nothing is said, after 30 at most'),
      }),
    )
    .output(NewSession),
  update: endpoint(members)
    .route({
      method: 'PATCH',
      path: '/sessions/{name}',
      tags: ['sessions'],
      summary: "Change a session's servers or its end",
      inputStructure: 'detailed',
    })
    .input(named.extend({ body: z.strictObject({ servers, expiresAt: moment.optional() }) }))
    .output(Session),
  end: endpoint(members)
    .route({
      method: 'DELETE',
      path: '/sessions/{name}',
      tags: ['sessions'],
      summary: 'End a session; its tokens stop working at once',
      inputStructure: 'detailed',
    })
    .input(named)
    .output(Session),
}
