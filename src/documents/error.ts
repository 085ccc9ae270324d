/**
 * The document cannot be edited without losing its layout. The message continues a sentence that begins with the edited
 * key.
 */
export class DocumentError extends Error {
  constructor(
    message = 'is written in a way that Sallyport cannot edit; change the file with an editor',
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'DocumentError'
  }
}
