// Bundled in the place of a global that oRPC only asks "is it one of these?". No form ever passes here, and a mere look
// at the real one loads a whole HTTP client: 10 MB in every gateway that was asked anything.
export class FormData {}
