import type { ErrorSections } from './section.ts'

export const approvals = {
  'approval-waiting': {
    meaning:
      'The call requires approval, and nobody has answered yet. Nothing was sent. REST answers 202 to the call of a tool, and 409 to any other request.',
    example:
      'files_write_file is waiting for approval approval_1m7pabb; repeat the same call to continue. Approval is required because no rule matches; write asks',
    steps: [
      'Answer the approval: in the dashboard under `/approvals`, or with `sallyport approvals approve ID --as NAME`.',
      'Repeat the same call. It joins the same approval and runs as soon as a person has approved it.',
      'To avoid further approvals, give a grant, or write a rule that allows the tool.',
    ],
    guide: 'approvals.md#what-the-agents-program-gets',
  },
  'approval-denied': {
    meaning: 'A person denied the call. Nothing was sent. The message contains the reason that the person gave.',
    example: 'kim denied github_merge_pull_request: Open a pull request instead',
    steps: [
      'Follow the reason instead of repeating the call.',
      'If the answer was a mistake, repeat the call to ask for a new approval.',
    ],
    guide: 'approvals.md#what-an-approval-is',
  },
  'approval-expired': {
    meaning:
      'The approval expired before the call could run. Nobody answered within `limits.approvalExpiry` (10 minutes by default), or somebody approved and the call was not repeated in time. Nothing was sent.',
    example: 'Nobody answered the approval for files_write_file in time',
    steps: [
      'Repeat the call to ask for a new approval.',
      'Answer sooner: `sallyport approvals watch --as NAME` shows approvals as they come, and webhooks can announce them.',
      'To allow more time, raise `limits.approvalExpiry` in the configuration.',
    ],
    guide: 'approvals.md#what-an-approval-is',
  },
  'approval-withdrawn': {
    meaning:
      'The approval is no longer valid, because the tool, the server, the arguments or the rules changed after it was given, or the person who gave it was removed. Nothing was sent.',
    example: 'The definition, the server or the rules of files_write_file changed after the approval was requested',
    steps: [
      'Repeat the call to ask for a new approval.',
      'Run `sallyport approvals show ID` to see why it was withdrawn.',
      'If the server changed the tool, look at the difference with `sallyport tools diff NAME`.',
    ],
    guide: 'approvals.md#what-an-approval-is',
  },
  'approval-answered': {
    meaning: 'The approval already has an answer, or it has expired. The first answer counts, and yours was not used.',
    steps: ['Run `sallyport approvals show ID` to see who answered and how.'],
    guide: 'approvals.md#what-an-approval-is',
    numbers: ['http', 'exit'],
  },
  'approval-not-found': {
    meaning: 'No approval has this id, or you are not allowed to see it.',
    example: 'No approval has the id approval_1m7pabb',
    steps: [
      'Run `sallyport approvals list` to see the approvals with their ids.',
      'Sign in as the owner of the agent or as an administrator: `--as NAME`.',
    ],
    guide: 'approvals.md#at-the-terminal',
  },
  'approval-changed': {
    meaning:
      'The approval is not the one that you were shown. Your answer was not used, because an answer counts only for what the person saw.',
    example: 'The approval differs from the one that was shown: `hash` does not match. Read the approval again',
    steps: ['Look at it again with `sallyport approvals show ID`, or load the page again.', 'Then answer it.'],
    guide: 'approvals.md#what-an-approval-is',
    numbers: ['http', 'exit'],
  },
  'approval-forbidden': {
    meaning:
      'You are not allowed to answer this approval. The rule that requires the approval can demand another person than the owner of the agent, two people, or a member of a group.',
    steps: [
      'Run `sallyport approvals show ID` to see who is allowed to answer.',
      'Ask one of these people.',
      'If the demand is wrong, an administrator can change `approvers` of the rule.',
    ],
    guide: 'approvals.md#who-may-answer',
    numbers: ['http', 'exit'],
  },
  'permission-spent': {
    meaning: 'Another call used the last call of the grant, or the approval, at the same moment. Nothing was sent.',
    example: 'The permission for files_write_file is used up',
    steps: [
      'Repeat the call. It asks for a new approval, or uses another grant.',
      'Run `sallyport grants list` to see how many calls are left.',
    ],
    guide: 'approvals.md#grants',
  },
  'grant-not-found': {
    meaning: 'No grant has this id, or you are not allowed to see it.',
    example: 'No grant has the id grant_1m7pabb',
    steps: ['Run `sallyport grants list` to see the grants with their ids.'],
    guide: 'approvals.md#grants',
    numbers: ['http', 'exit'],
  },
  'grant-invalid': {
    meaning:
      'The grant is not possible in this form. It needs a principal or a scope, and an end in the future. A tool of risk `danger` needs its exact name, and a rule with `approvers: two` permits no grants.',
    example: 'files_delete_all has risk danger: give its exact name instead of a pattern',
    steps: [
      'Give either `--principal` or a scope, and not both.',
      'For a tool of risk `danger`, write its exact name in `--tools`.',
      'In `same`, name arguments that the call has and that are strings, numbers, booleans or null.',
    ],
    guide: 'approvals.md#grants',
    numbers: ['http', 'exit'],
  },
} as const satisfies ErrorSections
