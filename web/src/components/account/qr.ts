import qrcode from "qrcode-generator";

/** Returns the dark modules of a QR code as one SVG path, in a square of `size` modules. */
export function qrPath(text: string): { size: number; path: string } {
  const code = qrcode(0, "M");
  code.addData(text);
  code.make();
  const size = code.getModuleCount();
  let path = "";
  for (let row = 0; row < size; row++) {
    for (let from = 0; from < size; from++) {
      let to = from;
      while (to < size && code.isDark(row, to)) to++;
      if (to > from) path += `M${from} ${row}h${to - from}v1h${from - to}z`;
      from = to;
    }
  }
  return { size, path };
}
