/** How the viewer writes numbers, money and dates. The console's words are English all the same. */
export function viewerLocale(): string | undefined {
  try {
    return Intl.getCanonicalLocales(globalThis.navigator?.language)[0];
  } catch {
    return undefined; // some systems name what is no locale, such as "en-US@posix"
  }
}

/** One formatter per locale, and of `also`: making one takes longer than a thousand uses. */
export function perLocale<Formatter>(
  make: (locale: string | undefined) => Formatter,
  also: () => string = () => "",
) {
  const made = new Map<string, Formatter>();
  return (): Formatter => {
    const locale = viewerLocale();
    const key = `${locale} ${also()}`;
    const known = made.get(key);
    if (known !== undefined) return known;
    const fresh = make(locale);
    made.set(key, fresh);
    return fresh;
  };
}

export function numberFormat(options: Intl.NumberFormatOptions = {}) {
  return perLocale((locale) => new Intl.NumberFormat(locale, options));
}

export function dateFormat(options: Intl.DateTimeFormatOptions) {
  return perLocale((locale) => new Intl.DateTimeFormat(locale, options));
}
