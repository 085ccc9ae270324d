/** The gateway's own server. No configured server can have this name. */
export const ownServerName = 'sallyport'
export const readResultName = 'sallyport_read_result'
export const approvalStatusName = 'sallyport_approval_status'
export const waitForApprovalName = 'sallyport_wait_for_approval'
