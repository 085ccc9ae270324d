import type { ErrorSections } from './section.ts'

export const data = {
  'storage-unavailable': {
    meaning:
      'The database cannot be written or read at the moment. A call that cannot be recorded is not sent. If the message says that a change is saved, only the notice to other gateways is missing.',
    example: 'The database answers, but it did not write in time',
    steps: [
      'Check the free disk space and the permissions of the data folder.',
      'With PostgreSQL, check that the server of `SALLYPORT_DATABASE_URL` runs and accepts connections.',
      'Run `sallyport doctor`. The gateway continues automatically when the database answers again.',
    ],
    guide: 'running.md#postgresql-and-several-gateways',
  },
  'clock-wrong': {
    meaning:
      'The clock of the machine differs from the clock of the PostgreSQL server by more than 10 minutes. Calls are refused, because approvals and tokens would expire at the wrong time.',
    steps: [
      "Set the clock of the gateway's machine, for example with NTP.",
      'If the clock of the database is wrong, set that one.',
      'The gateway continues automatically. `sallyport doctor` shows the difference.',
    ],
    guide: 'running.md#postgresql-and-several-gateways',
  },
  'storage-newer': {
    meaning:
      'A newer version of Sallyport wrote this data or this backup. The older version does not open it, because it could damage it.',
    example: 'This data has version 42, this program knows 40',
    steps: [
      'Start the version that wrote the data, or a newer one.',
      'To go back to the older version, restore a backup that this version made.',
    ],
    guide: 'upgrading.md#upgrade-a-checkout',
    numbers: ['exit'],
  },
  'audit-key-wrong': {
    meaning:
      'The record in this database was written with another key than the one that this gateway has. The gateway does not start, because its entries would look forged.',
    example: 'The record in this database was written with another key',
    steps: [
      'Give all gateways on this database the same `SALLYPORT_KEY`.',
      'Without `SALLYPORT_KEY`, copy the file `audit-key` from the data folder of a gateway that works.',
    ],
    guide: 'running.md#postgresql-and-several-gateways',
    numbers: ['exit'],
  },
  'data-not-empty': {
    meaning: 'The folder or the database for the restore already contains data. Nothing was restored.',
    example: '/var/lib/sallyport holds data already',
    steps: [
      'Restore into an empty folder: `sallyport restore FILE --data FOLDER`.',
      'With PostgreSQL, use an empty database in `SALLYPORT_DATABASE_URL`.',
    ],
    guide: 'running.md#backup',
    numbers: ['exit'],
  },
  'backup-invalid': {
    meaning:
      'The file is not a complete backup: it was cut or changed, or it is another kind of file. Nothing was restored.',
    steps: [
      'Use another copy of the backup, and check that it was copied completely.',
      'Make backups with `sallyport backup FILE`. A copy of the database file is not a backup.',
    ],
    guide: 'running.md#backup',
    numbers: ['exit'],
  },
  'backup-failed': {
    meaning: 'The backup was not written. There is no data in the folder or database, or the file cannot be written.',
    example: 'There is no data in /var/lib/sallyport',
    steps: [
      'Check the folder in `--data`, or `SALLYPORT_DATABASE_URL`.',
      'Check the free disk space and the permissions of the target folder. An existing file is never overwritten.',
    ],
    guide: 'running.md#backup',
    numbers: ['exit'],
  },
  'compact-failed': {
    meaning: 'The database file was not compacted. Nothing was lost, and the file is as it was before.',
    steps: ['Free as much disk space as the message names, then run `sallyport data compact` again.'],
    guide: 'record.md#how-large-the-data-gets',
    numbers: ['http', 'exit'],
  },
  'data-unsafe': {
    meaning:
      'Other users of this machine can change the data folder or a file in it, or a link or a special file is in its place. The command or the gateway stops before it uses a token or a key from there.',
    steps: [
      'Run the command that the message ends with. It corrects the owner or the permissions.',
      'If somebody else could write the folder for some time, revoke the tokens and check the configuration.',
    ],
    guide: 'running.md#the-data-folder',
    numbers: ['exit'],
  },
  'data-untrusted': {
    meaning:
      'The `.sallyport` folder in the current folder was not made by a gateway that you started. It may have come with a repository, so nothing in it was used.',
    steps: [
      'If the folder is yours, for example because you moved it, name it once: `sallyport serve --data FOLDER`.',
      'If it is not yours, do not use it: its author could receive your secrets.',
    ],
    guide: 'running.md#the-data-folder',
    numbers: ['exit'],
  },
  'client-file-unsafe': {
    meaning:
      'The configuration file of another program belongs to another user of this machine, is not a regular file, or is a link to such a file. Nothing was written.',
    example: '/srv/shop/.mcp.json belongs to another user (user id 1004)',
    steps: [
      'Run the command as the user who owns the file.',
      'Or name another file with `--file FILE`. For a link, look at its target first: it may come from a repository.',
    ],
    guide: 'agents.md#connect',
    numbers: ['exit'],
  },
  'client-file-invalid': {
    meaning:
      'The configuration file of another program cannot be read or edited: it is not valid, not UTF-8 text, too large, or written in a form that cannot be edited. Nothing was written.',
    example: '/home/ada/.cursor/mcp.json cannot be edited: line 4: the file is not JSON: comma expected',
    steps: ['Correct the line that the message names.', 'Or add the entry with an editor, as the guide shows.'],
    guide: 'agents.md#connect',
    numbers: ['exit'],
  },
  'data-locked': {
    meaning: 'Another gateway already runs with this data folder. Only one gateway can use a data folder.',
    example: 'The data folder /srv/shop/.sallyport is in use by another gateway (process 4711, http://127.0.0.1:4777)',
    steps: [
      'Use the gateway that runs: `sallyport status` shows it.',
      'Or stop it; the message names its process.',
      'Or start this gateway with another folder: `sallyport serve --data FOLDER`.',
    ],
    guide: 'running.md#the-data-folder',
    numbers: ['exit'],
  },
  'port-taken': {
    meaning: 'Another program already listens on the port of the gateway.',
    example: 'Port 4777 on 127.0.0.1 is taken by another program',
    steps: [
      'Start the gateway on another port: `sallyport serve --port PORT`.',
      'Or set `listen.port` in the configuration, or stop the other program.',
    ],
    guide: 'running.md#serve',
    numbers: ['exit'],
  },
  'file-failed': {
    meaning:
      'A file or folder cannot be used: the disk is full, it is read-only, or a permission is missing. On REST and MCP the message leaves the path out; the log of the gateway has it.',
    example:
      'The gateway cannot use one of its files: the disk is full (ENOSPC). The log of the gateway names the file',
    steps: [
      'Find the path in the message, or in the log of the gateway.',
      'Free disk space, or correct the permissions of the path.',
      'Repeat the command.',
    ],
    guide: 'running.md#the-data-folder',
  },
} as const satisfies ErrorSections
