/** A document that cannot be edited without losing its form. The message continues a sentence about the edited key. */
export class DocumentError extends Error {
  constructor(message = 'is written in a way that cannot be changed from here', options?: ErrorOptions) {
    super(message, options)
    this.name = 'DocumentError'
  }
}
