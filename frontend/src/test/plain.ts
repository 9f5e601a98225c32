/** Blanks that do not break a line look like others. */
export const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, " ");
