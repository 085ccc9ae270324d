import { describe, expect, it } from 'vitest'
import { suggestRisk } from '../../src/policy/policy.ts'

describe('a risk suggested from the words of a tool', () => {
  it.each([
    ['list_files', 'Lists the files of a folder', 'read'],
    ['getUser', 'Returns a user by id', 'read'],
    ['github_search_issues', 'Searches issues', 'read'],
    ['create_issue', 'Opens a new issue', 'write'],
    ['notion-update-page', '', 'write'],
    ['delete_branch', 'Deletes a branch', 'danger'],
    ['drop_table', '', 'danger'],
    ['clear_cache', 'Permanently removes all entries', 'danger'],
    ['get_and_delete', 'Reads a message', 'danger'],
    ['read_inbox', 'Reads the inbox and deletes what was read', 'danger'],
  ])('is for %s ("%s") %s', (name, description, risk) => {
    expect(suggestRisk({ name, description })?.risk).toBe(risk)
  })

  it.each([
    ['get_or_create_user', 'Returns a user'],
    ['fetch', 'Fetches an address and saves the answer to a file'],
    ['read_mail', 'Reads mail and sends a receipt'],
    ['check_out', 'Runs the payment'],
    ['query', 'Asks the database'],
    ['browser_click', 'Clicks an element'],
    ['think', ''],
  ])('is none for %s ("%s"), whose words contradict each other or say nothing', (name, description) => {
    expect(suggestRisk({ name, description })).toBeUndefined()
  })
})
