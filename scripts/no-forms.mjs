// Bundled instead of the global `FormData`. oRPC uses it only in `instanceof` checks, and the gateway handles no forms. Using
// the global would load an HTTP client, which costs 10 MB of memory in every gateway.
export class FormData {}
