/** "+12 %", "−3 %", "as before"; null where there is nothing to compare with. */
export function changeWords(current: number, previous: number): string | null {
  if (previous === 0) return null;
  const percent = Math.round((100 * (current - previous)) / previous);
  if (percent === 0) return "as before";
  return percent > 0 ? `+${percent} %` : `−${-percent} %`;
}
