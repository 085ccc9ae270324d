import type { ErrorSections } from './section.ts'

export const people = {
  'token-missing': {
    meaning:
      'The request has no token and no signed-in user. A command reports this if it finds no token for the address that it was given.',
    example: 'The request has no token',
    steps: [
      'Create a token: `sallyport tokens create --agent NAME`.',
      'Configure the agent to send it as `Authorization: Bearer TOKEN`. Check that a proxy does not remove the header.',
      'For a command, use `--token TOKEN`, `SALLYPORT_TOKEN`, or `--data FOLDER` for a gateway on this machine.',
    ],
    guide: 'people.md#agents-and-their-tokens',
  },
  'token-invalid': {
    meaning:
      'The gateway does not accept the token. It was mistyped, revoked or has expired, its agent or session was removed, or its owner is disabled.',
    example: 'This token is not valid any more',
    steps: [
      'Create a new token with `sallyport tokens create --agent NAME` and put it into the settings of the agent.',
      'Run `sallyport tokens list` to see which tokens are revoked or expired.',
      'If the owner is disabled, enable the user, or give the agent another owner with `sallyport agents change NAME --owner USER`.',
    ],
    guide: 'people.md#agents-and-their-tokens',
  },
  'sign-in-failed': {
    meaning: 'The name or the password is wrong. The gateway does not say which of the two.',
    example: 'The name or the password is wrong',
    steps: [
      'Check the name and the password, then try again. After five wrong attempts you must wait before the next one.',
      'An administrator can set a new password: `sallyport users password NAME --as ADMINISTRATOR`.',
    ],
    guide: 'people.md#users-and-roles',
    numbers: ['http', 'exit'],
  },
  'sign-in-needed': {
    meaning:
      'The sign-in has ended. It ends after 12 hours without a request, after 7 days, and when the role, the groups or the password of the user change.',
    example: 'This sign-in has ended',
    steps: ['Sign in again.', 'If it ends at once each time, ask an administrator whether the user is disabled.'],
    guide: 'people.md#signing-in-over-rest',
    numbers: ['http', 'exit'],
  },
  'person-needed': {
    meaning:
      'Only a signed-in user is allowed to do this. The admin token and the tokens of agents and sessions are not enough, for example to answer an approval or to change users.',
    example: 'This needs a signed-in user; the admin token is not enough',
    steps: [
      'On the command line add `--as NAME`. It asks for the password, and `--password-stdin` reads it in a script.',
      'In the browser, sign in to the dashboard.',
      'If there is no user yet, run `sallyport setup-link` and open the link.',
    ],
    guide: 'people.md#users-and-roles',
    numbers: ['http', 'exit'],
  },
  'name-taken': {
    meaning:
      'A user, an agent or a session already has this name. Names of sessions are never used a second time, and users whose names differ only in upper and lower case count as equal.',
    example: 'There is a user named kim',
    steps: [
      'Choose another name.',
      'To see what exists, run `sallyport users list`, `sallyport agents list` or `sallyport sessions list`.',
    ],
    guide: 'people.md',
    numbers: ['http', 'exit'],
  },
  'last-administrator': {
    meaning:
      'The user is the only administrator and cannot be removed, disabled or given another role. Otherwise nobody could manage the gateway.',
    example: 'ada is the only administrator',
    steps: [
      'Make another user an administrator first: `sallyport users change NAME --role administrator --as ADMINISTRATOR`.',
      'Then repeat the command.',
    ],
    guide: 'people.md#users-and-roles',
    numbers: ['http', 'exit'],
  },
  forbidden: {
    meaning:
      'The user, agent or token is not allowed to do this. The role does not permit it, or it belongs to somebody else.',
    example: 'Only administrators change users',
    steps: [
      'Ask an administrator, or sign in as a user with that right: `--as NAME`.',
      'For a file that cannot be read, run the command as the user who owns the data folder.',
      'For a used or expired setup link, run `sallyport setup-link` to print a new one.',
    ],
    guide: 'people.md#users-and-roles',
  },
} as const satisfies ErrorSections
