import "@mantine/core/styles/baseline.css";
import "@mantine/core/styles/default-css-variables.css";
import "@mantine/core/styles/global.css";
import "@mantine/core/styles/UnstyledButton.css";
import "@mantine/core/styles/VisuallyHidden.css";
import "@mantine/core/styles/ScrollArea.css";
import "@mantine/core/styles/Loader.css";
import "@mantine/core/styles/Overlay.css";
import "@mantine/core/styles/Paper.css";
import "@mantine/core/styles/ModalBase.css";
import "@mantine/core/styles/Modal.css";
import "@mantine/core/styles/Drawer.css";
import "@mantine/core/styles/CloseButton.css";
import "@mantine/core/styles/Popover.css";
import "@mantine/core/styles/Combobox.css";
import "@mantine/core/styles/Menu.css";
import "@mantine/core/styles/Tooltip.css";
import "@mantine/core/styles/Button.css";
import "@mantine/core/styles/ActionIcon.css";
import "@mantine/core/styles/Input.css";
import "@mantine/core/styles/Pill.css";
import "@mantine/core/styles/PillsInput.css";
import "@mantine/core/styles/InlineInput.css";
import "@mantine/core/styles/PasswordInput.css";
import "@mantine/core/styles/NumberInput.css";
import "@mantine/core/styles/Checkbox.css";
import "@mantine/core/styles/Switch.css";
import "@mantine/core/styles/FloatingIndicator.css";
import "@mantine/core/styles/SegmentedControl.css";
import "@mantine/core/styles/Tabs.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/session.css";
import "./styles/cluster.css";
import { createTheme } from "@mantine/core";

export const theme = createTheme({
  primaryColor: "tide",
  primaryShade: { light: 7, dark: 7 },
  colors: {
    tide: [
      "#e6f7f4",
      "#c9ede7",
      "#97dccf",
      "#61c8b7",
      "#36b3a1",
      "#1c9f8d",
      "#0f8e7e",
      "#0b7a6e",
      "#08655b",
      "#054f47",
    ],
    red: ["#fdecea", "#fad3cf", "#f5a9a2", "#f2958c", "#f58f85", "#e05a4f", "#c9372c", "#b3261e", "#98201a", "#7c1914"],
    dark: [
      "#e1eae7",
      "#c3d0cc",
      "#9caea8",
      "#6f837d",
      "#3a4a46",
      "#2c3a37",
      "#1c2624",
      "#151d1b",
      "#0f1615",
      "#0a0f0e",
    ],
  },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans KR", "Noto Sans JP", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", "Noto Sans Mono", "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  defaultRadius: 6,
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Button: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "xs" } },
    PasswordInput: { defaultProps: { size: "xs" } },
    NumberInput: { defaultProps: { size: "xs" } },
    Textarea: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs", allowDeselect: false } },
    Checkbox: { defaultProps: { size: "xs" } },
    Switch: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    Modal: { defaultProps: { centered: true, transitionProps: { duration: 100 } } },
    Drawer: { defaultProps: { transitionProps: { duration: 120 } } },
    Tooltip: { defaultProps: { openDelay: 300 } },
  },
});
