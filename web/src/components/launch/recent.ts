/** The options of useLocalStorage for the images that were launched last in this browser. */
export const recentImages = {
  key: "berth.images",
  defaultValue: [] as string[],
  getInitialValueInEffect: false,
};
