// noVNC: shows the desktop and opens its menu.
import { testApp } from "./visit.ts";

await testApp(({ page, eventually, picture }) => {
  /** Returns the number of different colors in a sample of the pixels. */
  const colorCount = () =>
    page.evaluate(() => {
      const screen = document.querySelector("canvas");
      const pixels = screen?.getContext("2d")?.getImageData(0, 0, screen.width, screen.height).data;
      const seen = new Set<string>();
      for (let i = 0; pixels && i < pixels.length; i += 4 * 97) seen.add(pixels.slice(i, i + 3).join());
      return seen.size;
    });
  return [
    [
      "shows a desktop",
      async () => {
        await page.waitForURL(/vnc\.html/); // the first page redirects to it
        await page.locator("canvas").first().waitFor();
        await eventually("colours on the screen", async () => (await colorCount()) > 3);
      },
    ],
    [
      "opens the menu with the mouse",
      async () => {
        await picture("desktop");
        const canvasImage = () => page.locator("canvas").first().screenshot();
        const first = await canvasImage();
        await page
          .locator("canvas")
          .first()
          .click({ button: "right", position: { x: 400, y: 300 } });
        await eventually("the menu", async () => !(await canvasImage()).equals(first));
      },
    ],
  ];
});
