"""What sections are drawn with: escaped HTML, and line charts as SVG."""
