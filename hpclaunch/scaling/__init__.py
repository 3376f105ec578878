"""How a program scales: tables and fits of measured sizes, predictions of sizes not measured. Pure."""
