/** The images that were launched last in this browser, for useLocalStorage. */
export const recentImages = {
  key: "berth.images",
  defaultValue: [] as string[],
  getInitialValueInEffect: false,
};
